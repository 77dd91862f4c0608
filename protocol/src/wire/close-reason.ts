/** Maximum bytes of a close frame's reason. WebSocket libraries throw for a longer one. */
const closeReasonBytes = 123;

/** Cuts a reason between two characters if it is too long for a close frame. */
export function closeReason(reason: string): string {
  const bytes = new Uint8Array(closeReasonBytes);
  return new TextDecoder().decode(bytes.subarray(0, new TextEncoder().encodeInto(reason, bytes).written));
}
