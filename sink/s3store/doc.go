// Package s3store keeps a sink.Store in a bucket of S3 or of a server that speaks its protocol
// (MinIO, Ceph RGW, Garage, versitygw, …), through minio-go.
//
// Create is a PUT with "If-None-Match: *". It is always a single PUT, because minio-go does not
// send the condition when it completes a multipart upload. 412 Precondition Failed means that the
// key is taken. 409 Conflict means that the server could not decide between concurrent requests, so
// the PUT is sent again
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
//
// Open is a HEAD, and each ReadAt of the object is a ranged GET. The GETs are tied to the entity
// tag that the HEAD saw: an object that was replaced meanwhile gives sink.ErrChanged, never bytes
// of two versions.
//
// minio-go retries what can be retried (5xx, throttling, connection errors) up to ten times with
// growing pauses, until the context ends.
package s3store
