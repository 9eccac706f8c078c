// Package live is the page on which people watch a process of a pipeline, and the document that it shows.
//
// A [View] belongs to a running process, which tells it what it commits and how far long work is. The View reads
// the status from the store only while somebody looks, and one read at a time. [ServePage] answers with the page,
// which holds no data and needs nothing from elsewhere.
package live
