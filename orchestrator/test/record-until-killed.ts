import { createHash } from 'node:crypto';
import { systemClock } from '../../lib/src/clock.ts';
import { LiveTerminal } from '../src/domain/terminals/live-terminal.ts';
import { openFileTranscripts } from '../src/store/transcripts/transcripts-files.ts';
import { say } from './say.ts';
import { defaultRules, MemoryShell } from './terminals.ts';
import { transcriptsIn } from './transcripts.ts';

/**
 * Records a shell that never stops. For each chunk that is shown, prints the length and the hash of all output so far.
 */
const [place, sessionId] = process.argv.slice(2) as [string, string];
const transcripts = place.startsWith('postgres:')
  ? transcriptsIn(place, { clock: systemClock })
  : await openFileTranscripts(place, systemClock);
const recording = await transcripts.create(sessionId, (reason) => {
  throw reason;
});
const live = new LiveTerminal({
  session_id: sessionId,
  operator_id: 'a',
  cols: 80,
  rows: 24,
  clock: systemClock,
  rules: defaultRules,
  recording,
  recentScreen: async () => new Uint8Array(0),
  onEnded: () => {},
});
const options = { session_id: sessionId, node_id: 'n', cols: 80, rows: 24, shell: null, operator: 'ada' };
let given = 0;
let said = 0;
class EndlessShell extends MemoryShell {
  override taken(bytes: number): void {
    given += bytes;
    setImmediate(speak);
  }
}
const shell = new EndlessShell(options, live);
const muster = { session_id: sessionId, operator_id: 'a', operator: 'ada', node_id: 'n', agent: 'web-1', user: 'root' };
live.begin(shell, { width: 80, height: 24, timestamp: 1, title: 'ada on web-1', env: {}, muster });
const shown = createHash('sha256');
let length = 0;
const seen = {
  show(bytes: Uint8Array, sent: () => void) {
    shown.update(bytes);
    length += bytes.length;
    say(`${length} ${shown.copy().digest('hex')}\n`);
    sent();
  },
  notify: () => {},
  pause: () => {},
  resume: () => {},
  close: () => {},
  cut: () => {},
};
live.connect(seen, { operator_id: 'a', username: 'ada', mode: 'control', since: 1 });

/** Fills the flow-control window. Some chunks are not valid UTF-8. */
function speak(): void {
  while (said - given < 64 * 1024) {
    const text = `żółw ${said}\r\n`.repeat(20);
    const bytes = said % 7 === 0 ? Buffer.from(text, 'utf16le') : Buffer.from(text);
    said += bytes.length;
    live.output(bytes);
  }
}
speak();
