"""The first moments of a server over stdio: it answers before everything is loaded."""
