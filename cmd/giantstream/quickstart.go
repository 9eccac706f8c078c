package main

import "github.com/spf13/cobra"

func (a *app) quickstart() *cobra.Command { return &cobra.Command{Use: "quickstart", Short: "x"} }
