// Package live is the page on which people watch a process of a pipeline, and the document that it shows.
//
// A [View] belongs to a running process, which reports its commits and the progress of long work to it. The View
// reads the status from the store only while a page is open, one read at a time. [ServePage] answers with the page,
// which holds no data and needs nothing from elsewhere.
package live
