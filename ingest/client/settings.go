package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"
)

// TopicSettings decide how long a topic keeps its records.
type TopicSettings struct {
	// Compact and Delete are the parts of cleanup.policy.
	Compact, Delete bool
	// RetentionMillis and RetentionBytes bound a topic that deletes; -1 is no bound.
	RetentionMillis, RetentionBytes int64
	// CompactionLagMillis is how long a record is safe from compaction, at least.
	CompactionLagMillis int64
}

// Keeps reports whether the topic deletes nothing by age or size.
func (s TopicSettings) Keeps() bool {
	return !s.Delete || s.RetentionMillis < 0 && s.RetentionBytes < 0
}

const (
	cleanupPolicy  = "cleanup.policy"
	retentionMs    = "retention.ms"
	retentionBytes = "retention.bytes"
	compactionLag  = "min.compaction.lag.ms"
)

// Settings returns the settings of topics that exist. It needs the right to describe their
// configuration.
func (c *Client) Settings(ctx context.Context, topics ...string) (map[string]TopicSettings, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	req := &kafka.DescribeConfigsRequest{}
	for _, t := range topics {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic,
			ResourceName: t, ConfigNames: []string{cleanupPolicy, retentionMs, retentionBytes, compactionLag}})
	}
	res, err := c.kafka.DescribeConfigs(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("kafka: describing topics: %w", cause(err))
	}
	out := map[string]TopicSettings{}
	for _, r := range res.Resources {
		if r.Error != nil {
			return nil, fmt.Errorf("kafka topic %q: describing it: %w", r.ResourceName, r.Error)
		}
		s := TopicSettings{RetentionMillis: -1, RetentionBytes: -1}
		for _, e := range r.ConfigEntries {
			switch e.ConfigName {
			case cleanupPolicy:
				policies := strings.Split(e.ConfigValue, ",")
				s.Compact, s.Delete = slices.Contains(policies, "compact"), slices.Contains(policies, "delete")
			case retentionMs:
				s.RetentionMillis, err = strconv.ParseInt(e.ConfigValue, 10, 64)
			case retentionBytes:
				s.RetentionBytes, err = strconv.ParseInt(e.ConfigValue, 10, 64)
			case compactionLag:
				s.CompactionLagMillis, err = strconv.ParseInt(e.ConfigValue, 10, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("kafka topic %q: %s: %w", r.ResourceName, e.ConfigName, err)
			}
		}
		out[r.ResourceName] = s
	}
	return out, nil
}
