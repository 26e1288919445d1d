"""How alerts come to be, stay, and go."""
