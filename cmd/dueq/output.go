package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// addOutputFlag adds the flag that chooses between people and scripts.
func addOutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "print a `table` or json")
	completeFlag(cmd, "output", "table", "json")
}

func checkOutput(output string) error {
	if output != "table" && output != "json" {
		return fmt.Errorf("--output is %q, not table or json", output)
	}
	return nil
}
