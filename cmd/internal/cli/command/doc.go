// Package command has what every command of the command line needs: exit codes and the errors behind them, the flags
// that name a pipeline or input files, the opened pipeline, and output as text or JSON.
//
// A command is made by a function of an App. It loads its PipelineFlags, opens the Pipeline with App.Open, does its
// work, and writes to App.Out through a Printer or WriteJSON. An error that the same command line would only repeat
// is a UsageError.
package command
