"""Files of users, of citerec and of others: read, written, checked, cached."""
