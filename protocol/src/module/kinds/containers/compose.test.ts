import { expect, test } from 'vitest';
import { composePathFault, composeVariableName } from './compose.ts';

test.each([
  'HOME',
  'TMPDIR',
  'XDG_CONFIG_HOME',
  'ALL_PROXY',
  'https_proxy',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'SSL_CERT_FILE',
])('refuses a variable that Compose or its libraries read: %s', (name) => {
  expect(composeVariableName(name)).toContain('a variable that Compose itself reads');
});

test.each(['_', 'IFS', 'PS4', 'BASH_ENV', 'LD_PRELOAD', 'GODEBUG', 'PYTHONPATH', 'DOCKER_HOST', 'COMPOSE_FILE'])(
  'refuses a variable of the shell, of the loader, or of a runtime: %s',
  (name) => {
    expect(composeVariableName(name)).toBeDefined();
  },
);

test.each(['REPLY', 'TOKEN', 'TZ', 'ENV', 'GOOGLE_KEY', 'SSL_MODE', 'MY_PATH', 'HOME_URL'])('accepts %s', (name) => {
  expect(composeVariableName(name)).toBeUndefined();
});

test('refuses a path that a label of Compose cannot name', () => {
  expect(composePathFault('/srv/a,b.yaml')).toBe('must not contain commas');
  expect(composePathFault(`/${'x'.repeat(1000)}`)).toBe('must be at most 1000 characters long');
  expect(composePathFault(`/${'x'.repeat(999)}`)).toBeUndefined();
});
