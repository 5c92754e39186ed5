"""What a Python program uses: `citerec.open`, `citerec.from_papers`, and the objects that they return."""
