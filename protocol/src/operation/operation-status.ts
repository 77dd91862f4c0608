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
