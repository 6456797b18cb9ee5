package main

import (
	"encoding/json"
	"errors"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// outputFlag is the form in which a verb prints: "table" for people, or "json" for
// scripts.
type outputFlag string

// add adds the flag to a verb that prints tables unless told otherwise.
func (o *outputFlag) add(cmd *cobra.Command) {
	*o = "table"
	o.addAs(cmd, "print in this `format`: table or json")
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

// printJSON prints one line of JSON, in which texts look as they are.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// newTable is for lines whose cells are separated by tabs. The caller flushes it.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }
