package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// outputFlag is the form in which a verb prints: "table" for people, or "json" for
// scripts.
type outputFlag string

// add adds the flag to a verb that prints tables unless told otherwise.
func (o *outputFlag) add(cmd *cobra.Command) {
	*o = "table"
	o.addAs(cmd, "print a `table` or json")
}

// addAs adds the flag with the default that it has.
func (o *outputFlag) addAs(cmd *cobra.Command, usage string) {
	cmd.Flags().VarP(o, "output", "o", usage)
	completeFlag(cmd, "output", "table", "json")
}

// Set is for package pflag, as are String and Type.
func (o *outputFlag) Set(form string) error {
	if form != "table" && form != "json" {
		return errors.New("it is not table or json")
	}
	*o = outputFlag(form)
	return nil
}

func (o *outputFlag) String() string { return string(*o) }

func (o *outputFlag) Type() string { return "string" }
