// Command stream measures the streaming side on real servers: Apache Kafka and
// S3, as cmd/dev starts them. cmd/bench/stream/run starts both, calls this
// program and stops them:
//
//	cmd/bench/stream/run throughput   records from topic to committed Parquet, beside a bare consumer and other tools
//	cmd/bench/stream/run freshness    from a produced change to its embedding on the sink topic
//	cmd/bench/stream/run million      three workers, one of them killed, on a large graph, with checks
//
// # What throughput means
//
// Every contender is a process of its own that reads the same topic from its
// start. It is run twice, on a short topic and on a long one, and what the
// difference in records took in time and in processor time is its figure:
// start-up, and the wait for a last flush, fall out. Contenders take turns,
// and figures are medians over the rounds. Processor time is what the
// contender's process used, user and system; broker and S3 server, which share
// the machine with it, are not counted. It says more than wall time does
// wherever other work shares the cores.
//
// A contender is done when its rows are in the store: for giantstream, when
// the commit log covers the topics; for others, when the footers of their
// Parquet objects add up to the topic's records.
package main
