package jsonvalue_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/jsonvalue"
)

func TestValues(t *testing.T) {
	long := make([]byte, 9) // 2^64
	long[0] = 1
	negative := []byte{0xff, 0, 0, 0, 0, 0, 0, 0, 0} // -2^64
	for want, got := range map[string][]byte{
		`"a\"b\\c\nd\u0001é"`: jsonvalue.AppendString(nil, "a\"b\\c\nd\x01é"),
		`""`:                  jsonvalue.AppendString(nil, []byte(nil)),
		`"é"`:                 jsonvalue.AppendBytes(nil, []byte("é")),
		`{"base64":"/wA="}`:   jsonvalue.AppendBytes(nil, []byte{0xff, 0}),

		"1000001":                  jsonvalue.AppendFloat(nil, 1000001, 64),
		"9007199254740991":         jsonvalue.AppendFloat(nil, 1<<53-1, 64),
		"9.007199254740992e+15":    jsonvalue.AppendFloat(nil, 1<<53, 64),
		"-9.007199254740992e+15":   jsonvalue.AppendFloat(nil, -(1 << 53), 64),
		"16777215":                 jsonvalue.AppendFloat(nil, 1<<24-1, 32),
		"1.6777216e+07":            jsonvalue.AppendFloat(nil, 1<<24, 32),
		"2047":                     jsonvalue.AppendFloat(nil, 2047, 16),
		"2.048e+03":                jsonvalue.AppendFloat(nil, 2048, 16),
		"0.1":                      jsonvalue.AppendFloat(nil, float64(float32(0.1)), 32),
		"0":                        jsonvalue.AppendFloat(nil, math.Copysign(0, -1), 64),
		"1e-07":                    jsonvalue.AppendFloat(nil, 1e-7, 64),
		"0.000001":                 jsonvalue.AppendFloat(nil, 1e-6, 64),
		"null":                     jsonvalue.AppendFloat(nil, math.NaN(), 64),
		`{"float":"Infinity"}`:     jsonvalue.AppendFloat(nil, math.Inf(1), 64),
		`{"float":"-Infinity"}`:    jsonvalue.AppendFloat(nil, math.Inf(-1), 32),
		"1012351":                  jsonvalue.AppendDecimal(nil, 1012351, 0),
		"-0.05":                    jsonvalue.AppendDecimal(nil, -5, 2),
		"19.90":                    jsonvalue.AppendDecimal(nil, 1990, 2),
		"-9223372036854775808":     jsonvalue.AppendDecimal(nil, math.MinInt64, 0),
		"-922337203685477580.8":    jsonvalue.AppendDecimal(nil, math.MinInt64, 1),
		"0.00":                     jsonvalue.AppendLongDecimal(nil, nil, 2),
		"-0.01":                    jsonvalue.AppendLongDecimal(nil, []byte{0xff, 0xff}, 2),
		"255":                      jsonvalue.AppendLongDecimal(nil, []byte{0, 0xff}, 0),
		"18446744073709551616":     jsonvalue.AppendLongDecimal(nil, long, 0),
		"-1844674407370955161.6":   jsonvalue.AppendLongDecimal(nil, negative, 1),
		"-1500":                    jsonvalue.AppendLongDecimal(nil, []byte{0xf1}, -2),
		`{"base64":"AAA="}`:        jsonvalue.AppendLongDecimal(nil, []byte{0, 0}, jsonvalue.MaxScale+1),
		`"2020-01-02"`:             jsonvalue.AppendDate(nil, 18263),
		`"1969-12-31"`:             jsonvalue.AppendDate(nil, -1),
		`"12:00:00"`:               jsonvalue.AppendTimeOfDay(nil, 12*3600, 1),
		`"00:00:01.002"`:           jsonvalue.AppendTimeOfDay(nil, 1002, 1e3),
		`"-00:00:00.000000001"`:    jsonvalue.AppendTimeOfDay(nil, -1, 1e9),
		`"1970-01-01T00:00:00.5Z"`: jsonvalue.AppendTime(nil, time.UnixMilli(500)),
		`"P1M2DT3.004S"`:           jsonvalue.AppendInterval(nil, 1, 2, 3004),
		`"00010203-0405-0607-0809-0a0b0c0d0e0f"`: jsonvalue.AppendUUID(nil,
			[]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
	} {
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if !json.Valid(got) {
			t.Errorf("%s is no JSON", got)
		}
	}
	if got := jsonvalue.AppendLongDecimal(nil, make([]byte, 1<<20), 0); !strings.HasPrefix(string(got), `{"base64"`) {
		t.Errorf("a decimal of a megabyte became %.40s", got)
	}
}
