import { expect, test } from 'vitest';
import { announcement } from './announcement.ts';

const running = {
  apiUrl: 'https://127.0.0.1:4748',
  agentPort: 4747,
  fingerprint: Array(32).fill('9F').join(':'),
  agent: { name: 'web-1', status: 'approved' as const },
  suffix: '',
  user: 'ada',
  operator: 'ada',
  newKey: '/home/ada/.config/muster/operator.key',
  dataDir: 'data',
  agentHost: '127.0.0.1',
};

test('fits into 80 columns, and names one next command', () => {
  for (const agentHost of ['127.0.0.1', '0.0.0.0']) {
    const lines = announcement({ ...running, agentHost });
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines.filter((line) => line.includes('npx muster'))).toEqual(['  npx muster web-login']);
  }
});

test('shows the whole fingerprint in two lines, and omits parts that do not apply', () => {
  const lines = announcement(running);
  const at = lines.findIndex((line) => line.includes('certificate'));
  expect(`${lines[at]?.slice(15)}${lines[at + 1]?.slice(15)}`).toBe(running.fingerprint);
  const text = announcement({ ...running, fingerprint: null, user: null, newKey: null }).join('\n');
  expect(text).not.toMatch(/certificate|new key|runs as/);
});
