// Package export writes rows and embeddings as they were at a point: at a cut of the commit log, or at an event time.
//
// A cut is what the pipeline had committed, and an event time is what had happened, as far as the pipeline knows by
// now. docs/format/export.md defines both, and says which of them can be exported for how long.
//
// The parts are written first and export.json last, so that an export that has it is complete. Until then the folder
// has incomplete.json, by which the next attempt knows that what lies there is an export's and may be removed.
package export
