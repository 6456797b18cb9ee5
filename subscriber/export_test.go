package subscriber

// Waiting is how many claims wait.
func (c *Consumer) Waiting() int {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	return len(c.claims)
}
