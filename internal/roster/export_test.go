package roster

// Parse reads a reply of the list script.
func Parse(reply []any) []Session { return parse(reply) }
