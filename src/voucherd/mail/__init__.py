"""Mail: letters to people, written in the transaction they belong to and sent afterwards."""
