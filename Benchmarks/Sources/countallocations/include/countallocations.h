// Empty: the library is loaded before a program's own, not linked.
