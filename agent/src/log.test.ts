import { describe, expect, test } from 'vitest';
import { createLog, type LogFormat } from './log.ts';

function lines(format: LogFormat, act: (log: ReturnType<typeof createLog>) => void): string[] {
  const written: string[] = [];
  act(createLog({ format, level: 'info', now: () => 0, write: (line) => written.push(line) }));
  return written;
}

describe('the log', () => {
  test('writes each line as one JSON object with the event first', () => {
    const written = lines('json', (log) => {
      log.debug({}, 'not this');
      log.info({ event: 'connected', node_id: 'n' }, 'connected');
      log.error({ error: Object.assign(new Error('no'), { code: 'EIO' }) }, 'a\nb');
    });
    expect(written).toEqual([
      '{"event":"connected","time":"1970-01-01T00:00:00.000Z","level":"info","message":"connected","node_id":"n"}\n',
      '{"time":"1970-01-01T00:00:00.000Z","level":"error","message":"a\\nb","error":"no (EIO)"}\n',
    ]);
  });

  test('writes readable text without control characters', () => {
    const written = lines('text', (log) =>
      log.warn({ path: '/etc/x', reason: 'two words\u001b[31m', none: undefined }, 'said\r\nso'),
    );
    expect(written).toEqual([
      '1970-01-01T00:00:00.000Z WARN  said\\x0d\\nso path=/etc/x reason="two words\\u001b[31m"\n',
    ]);
  });
});
