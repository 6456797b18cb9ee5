package main

// For tests: the program, and the argument that makes it a child.
var Run = run

const ChildFlag = childFlag
