"""Context engines shipped as plugins."""
