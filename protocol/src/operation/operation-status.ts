export const operationStatuses = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'interrupted',
  'expired',
] as const;
export type OperationStatus = (typeof operationStatuses)[number];

/** Reports whether an operation's status is final. */
export function hasEnded(status: OperationStatus): boolean {
  return status !== 'queued' && status !== 'running';
}

/**
 * Reports whether an operation is an apply that was refused after it was queued, because its plan was stale. Such an
 * apply changed nothing, and its `error` starts with `plan_stale: `. If an apply is refused at the request, it has no
 * operation, and the response is 409 `plan_stale`.
 */
export function endedStale(operation: {
  readonly plan_id: string | null;
  readonly status: OperationStatus;
  readonly error: string | null;
}): boolean {
  const { plan_id, status, error } = operation;
  return plan_id !== null && status === 'failed' && error?.startsWith('plan_stale') === true;
}
