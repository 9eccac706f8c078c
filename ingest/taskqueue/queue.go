package taskqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"giantstream/ingest/client"
)

// MaxDeliveries is how often a task is handed out at most. It is Kafka's default for group.share.delivery.count.limit;
// a broker with a lower limit gives a task up earlier, one with a higher limit does not get to use it.
const MaxDeliveries = 5

// requestTimeout bounds what is asked of the group's coordinator. Apache Kafka answers late, or not at all, while it
// creates its own topics on the first use of a share group.
const requestTimeout = 10 * time.Second

// retention is how long tasks and reports are kept: for longer than a task waits for a worker, and not for ever.
const retention = 7 * 24 * time.Hour

// ErrNoShareGroups: the broker cannot hand out tasks.
var ErrNoShareGroups = errors.New("the Kafka cluster has no share groups with renewable locks: use Apache Kafka 4.2 " +
	"or newer with share.version=1 (kafka-features.sh), or have another scheduler run 'giantstream build stage'")

// Queue is where a coordinator and its workers meet. All of them have the same topics and the same group.
type Queue struct {
	Client *client.Client
	// Tasks is the topic of tasks, Reports that of what became of them. Engine and workers create them if they are
	// missing.
	Tasks, Reports string
	// Group is the id of the share group. No consumer group may have it.
	Group string
	Log   *slog.Logger
}

// probe is the value of a record of Queue.Tasks that is no task, and that workers accept.
const probe = "probe"

// event is what a report says of a task.
type event string

const (
	begun  event = "begun"
	done   event = "done"
	failed event = "failed" // it will be handed out again
	gaveUp event = "gave up"
)

// report is the value of a record of Queue.Reports.
type report struct {
	Task     string `json:"task"`
	Event    event  `json:"event"`
	Worker   string `json:"worker"`
	Delivery int32  `json:"delivery"`
	Error    string `json:"error,omitempty"`
}

// prepare checks the broker, and makes what is missing on it: the topics, and the setting by which the group begins at
// the oldest task. It is idempotent.
func (q *Queue) prepare(ctx context.Context) error {
	franz, err := q.Client.Franz()
	if err != nil {
		return err
	}
	defer franz.Close()
	if err := checkBroker(ctx, franz); err != nil {
		return err
	}
	// A topic with more partitions would do no harm to tasks, but reports and start offsets are read from one.
	if err := q.Client.EnsureTopics(ctx, client.TopicSpec{Name: q.Tasks, Partitions: 1, Retention: retention},
		client.TopicSpec{Name: q.Reports, Partitions: 1, Retention: retention}); err != nil {
		return err
	}
	return q.beginAtOldest(ctx, franz)
}

// checkBroker returns ErrNoShareGroups unless the broker takes renewals, which came with Kafka 4.2 (KIP-1222).
func checkBroker(ctx context.Context, franz *kgo.Client) error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "giantstream", "1"
	res, err := req.RequestWith(ctx, franz)
	if err != nil {
		return fmt.Errorf("kafka: asking for the broker's versions: %w", err)
	}
	const renewals = 2 // the version of ShareAcknowledge that has them
	acknowledge := kmsg.NewShareAcknowledgeRequest()
	for _, k := range res.ApiKeys {
		if k.ApiKey == acknowledge.Key() && k.MaxVersion >= renewals {
			return nil
		}
	}
	return ErrNoShareGroups
}

// beginAtOldest makes the group hand out what was published before its first member came. Kafka's default would skip
// those records.
func (q *Queue) beginAtOldest(ctx context.Context, franz *kgo.Client) error {
	if err := client.Configure(ctx, franz, kmsg.ConfigResourceTypeGroupConfig, q.Group,
		map[string]string{"share.auto.offset.reset": "earliest"}); err != nil {
		return fmt.Errorf("kafka share group %q: setting share.auto.offset.reset to earliest: %w", q.Group,
			explain(err))
	}
	return nil
}

// startOffset returns the offset of the first task that the group may still hand out, 0 before it has handed out any.
func (q *Queue) startOffset(ctx context.Context, franz *kgo.Client) (int64, error) {
	topic := kmsg.NewDescribeShareGroupOffsetsRequestGroupTopic()
	topic.Topic, topic.Partitions = q.Tasks, []int32{0}
	group := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
	group.GroupID = q.Group
	group.Topics = append(group.Topics, topic)
	req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	req.Groups = append(req.Groups, group)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := req.RequestWith(ctx, franz)
	if err == nil && len(res.Groups) == 1 {
		err = kerr.ErrorForCode(res.Groups[0].ErrorCode)
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, nil // nobody has joined it yet
	}
	if err != nil {
		return 0, fmt.Errorf("kafka share group %q: reading its start offset: %w", q.Group, explain(err))
	}
	var start int64 // -1 in the answer before the first task
	for _, g := range res.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return 0, fmt.Errorf("kafka share group %q: reading its start offset of %s: %w", q.Group, q.Tasks,
						explain(err))
				}
				start = max(start, p.StartOffset)
			}
		}
	}
	return start, nil
}

// explain says what is wrong with a broker that knows the requests and refuses them.
func explain(err error) error {
	if errors.Is(err, kerr.UnsupportedVersion) {
		return fmt.Errorf("%w (%w)", ErrNoShareGroups, err)
	}
	return err
}

func (q *Queue) record(r report) *kgo.Record {
	const most = 4 << 10 // bytes of an error's message
	r.Error = r.Error[:min(len(r.Error), most)]
	value, _ := json.Marshal(r) // strings and numbers
	return &kgo.Record{Topic: q.Reports, Key: []byte(r.Task), Value: value}
}
