import { expect, test } from 'vitest';
import type { Terminals } from '../../domain/terminals/terminals.ts';
import { terminalHandlers } from './terminals.ts';

const session_id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';

test.each([
  [undefined, 'raw', 'application/octet-stream'],
  ['raw', 'raw', 'application/octet-stream'],
  ['asciicast', 'cast', 'application/x-asciicast'],
] as const)('serves a transcript in the format %s as a download', async (format, ending, type) => {
  const { getTranscript } = terminalHandlers({
    transcript: async () => (async function* () {})(),
  } as unknown as Terminals);
  const request = { params: { session_id }, query: format ? { format } : {}, session: { role: 'admin' } };
  const answer = await getTranscript(request as unknown as Parameters<typeof getTranscript>[0]);
  expect(answer.headers).toEqual({ 'content-disposition': `attachment; filename="${session_id}.${ending}"` });
  expect(answer.body.type).toBe(type);
});
