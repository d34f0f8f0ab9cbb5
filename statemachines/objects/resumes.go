package objects

import (
	"strconv"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// ResumesKey is the entry of status.controlledResources that counts how many of a job's restarts were resumes. It stays as long as the job.
const ResumesKey = "celsius.dev/resumes"

// Resumes returns how many of the restarts that status.retryCount counts were resumes. They are no retries: maxRetry does not count them.
func Resumes(s *batchv1alpha1.JobStatus) int32 {
	n, err := strconv.ParseInt(s.ControlledResources[ResumesKey], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return min(int32(n), s.RetryCount)
}
