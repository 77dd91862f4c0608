/** Records that this tab controls a terminal session, so that it regains control after a reload. */

const keyOf = (session_id: string) => `muster.terminal.${session_id}`;

export const wasInControl = (session_id: string): boolean => window.sessionStorage.getItem(keyOf(session_id)) !== null;

export function markControl(session_id: string, controls: boolean): void {
  if (controls) window.sessionStorage.setItem(keyOf(session_id), '1');
  else window.sessionStorage.removeItem(keyOf(session_id));
}
