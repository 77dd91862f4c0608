/** Maximum size of a close frame's reason, in bytes. WebSocket libraries throw if it is longer. */
const closeReasonBytes = 123;

/** Truncates a reason between two characters if it is too long for a close frame. */
export function closeReason(reason: string): string {
  const bytes = new Uint8Array(closeReasonBytes);
  return new TextDecoder().decode(bytes.subarray(0, new TextEncoder().encodeInto(reason, bytes).written));
}
