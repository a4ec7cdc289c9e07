"""Data, problems, references and marks that tests of several rooms share."""
