package service

import (
	"cmp"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteRecords deletes the records of a topic's partition 0 before an offset, which kafka-go cannot
// ask for.
func deleteRecords(t *testing.T, brokers []string, topic string, before int64) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	partition := kmsg.NewDeleteRecordsRequestTopicPartition()
	partition.Offset = before
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = topic, []kmsg.DeleteRecordsRequestTopicPartition{partition}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = []kmsg.DeleteRecordsRequestTopic{of}
	res, err := req.RequestWith(t.Context(), c)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// forgetOffset removes what a group without members has committed of partition 0 of a topic.
func forgetOffset(t *testing.T, brokers []string, group, topic string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	of := kmsg.NewOffsetDeleteRequestTopic()
	of.Topic, of.Partitions = topic, []kmsg.OffsetDeleteRequestTopicPartition{{}}
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group, req.Topics = group, []kmsg.OffsetDeleteRequestTopic{of}
	res, err := req.RequestWith(t.Context(), c)
	if err == nil {
		err = cmp.Or(kerr.ErrorForCode(res.ErrorCode), kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode))
	}
	if err != nil {
		t.Fatal(err)
	}
}
