package inspect

// ParseCounts reads a reply of the stats script.
func ParseCounts(reply []any) Counts { return parseCounts(reply) }
