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

/** Reports whether the status of an operation is final. */
export function hasEnded(status: OperationStatus): boolean {
  return status !== 'queued' && status !== 'running';
}
