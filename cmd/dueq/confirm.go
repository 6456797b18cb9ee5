package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// errNotConfirmed says that somebody was asked, and did not say yes.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")

// confirmFlags are the flags of verbs that ask before they do what cannot be
// undone.
type confirmFlags struct{ yes bool }

func (f *confirmFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
}

// check refuses to go on if nobody can be asked. It comes before anything is done.
func (f *confirmFlags) check(cmd *cobra.Command, output outputFlag) error {
	if f.yes || output != "json" && isTerminal(cmd.InOrStdin()) {
		return nil
	}
	return errors.New("this asks first, and there is nobody to ask: add --yes")
}

// ask asks whether to go on, unless that is said already.
func (f *confirmFlags) ask(ctx context.Context, cmd *cobra.Command, question string) error {
	if f.yes {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // ends with the process if nobody answers
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // without an answer it is no
		answers <- line
	}()
	select {
	case <-ctx.Done():
		return errInterrupted
	case line := <-answers:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		return errNotConfirmed
	}
}

// isTerminal reports whether somebody sits at the other end.
func isTerminal(end any) bool {
	f, ok := end.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device at which nobody sits
	return err != nil || !os.SameFile(info, null)
}
