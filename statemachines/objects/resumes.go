package objects

import (
	"fmt"
	"strconv"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// ResumesKey is the entry of status.controlledResources that counts how many of a job's restarts were resumes. It exists as long as the
// job.
const ResumesKey = "celsius.dev/resumes"

// Resumes returns how many of the restarts in status.retryCount were resumes. They are not retries, so maxRetry does not count them.
func Resumes(s *batchv1alpha1.JobStatus) int32 {
	n, err := strconv.ParseInt(s.ControlledResources[ResumesKey], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return min(int32(n), s.RetryCount)
}

// HowToResume states the command that resumes a suspended job.
func HowToResume(job *batchv1alpha1.Job) string {
	return fmt.Sprintf("celsius job resume %s -n %s resumes it", job.Name, job.Namespace)
}
