"""Files that are made from declarations: documentation, manifests, the boot snapshot. ``python -m`` runs it."""
