"""A dossier: one page that a reader opens from a file. Pure: an account goes in, HTML comes out."""
