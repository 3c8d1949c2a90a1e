"""What may be reached, read and shown: addresses, files, secrets, password fields."""
