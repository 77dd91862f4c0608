import { expect, test } from 'vitest';
import { readTerminalNotice } from './terminal-notice.ts';

test.each([
  ['{"type":"resize","cols":80,"rows":24}', { type: 'resize', cols: 80, rows: 24 }],
  ['{"type":"exit","code":3,"signal":null}', { type: 'exit', code: 3, signal: null }],
  ['{"type":"exit","code":4096}', { type: 'exit', code: null, signal: null }],
  [
    '{"type":"error","code":"terminal_idle","message":"idle"}',
    { type: 'error', code: 'terminal_idle', message: 'idle' },
  ],
  ['{"type":"error"}', { type: 'error', code: 'internal', message: '' }],
])('parses the notice %s', (text, notice) => {
  expect(readTerminalNotice(text)).toEqual(notice);
});

test.each(['{', 'null', '[]', '{"type":"title"}', '{"type":"resize","cols":0,"rows":24}', '{"type":"resize"}'])(
  'ignores the text %s',
  (text) => {
    expect(readTerminalNotice(text)).toBeNull();
  },
);
