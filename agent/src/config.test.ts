import { describe, expect, test } from 'vitest';
import { ConfigError, configChanges, defaultConfig, faultsOfFile, parseConfig } from './config.ts';

describe('the configuration', () => {
  test('uses a default for every setting', () => {
    expect(parseConfig('')).toEqual(defaultConfig);
    expect(parseConfig('# nothing yet\n')).toEqual({
      remote_terminal: {
        enabled: false,
        shell: '',
        allow_operator_shell_override: false,
        max_sessions: 100,
        user: '',
      },
      metrics: { enabled: true, collection_interval: 30 },
      scripts: { time_limit: 1800 },
      packages: { time_limit: 3600, lock_timeout: 600 },
      discovery: { enabled: null, port: 4747 },
    });
    expect(parseConfig('metrics: { collection_interval: 5 }').metrics).toEqual({
      enabled: true,
      collection_interval: 5,
    });
  });

  const faults: [string, string, string][] = [
    ['an unknown section', 'metric: {}', 'metric is not known: did you mean "metrics"?'],
    [
      'an unknown key',
      'metrics: { colection_interval: 5 }',
      'metrics.colection_interval is not known: did you mean "collection_interval"?',
    ],
    ['a wrong type', 'metrics: { enabled: "yes" }', 'metrics.enabled must be true or false'],
    [
      'a value below the minimum',
      'remote_terminal: { max_sessions: 0 }',
      'remote_terminal.max_sessions must be at least 1',
    ],
    [
      'a value above the maximum',
      'metrics: { collection_interval: 86401 }',
      'metrics.collection_interval must be at most 86400',
    ],
    ['a time limit of zero', 'scripts: { time_limit: 0 }', 'scripts.time_limit must be at least 1'],
    [
      'a fractional number',
      'metrics: { collection_interval: 1.5 }',
      'metrics.collection_interval must be a whole number',
    ],
    [
      'text instead of a number',
      'metrics: { collection_interval: soon }',
      'metrics.collection_interval must be a whole number',
    ],
    ['a number instead of text', 'remote_terminal: { shell: 5 }', 'remote_terminal.shell must be text'],
    ['a list instead of a mapping', '- a', 'the file must be a mapping of keys to values'],
    ['broken YAML', 'metrics:\n  enabled: [', 'line 2'],
    ['a duplicate key', 'metrics: {}\nmetrics: {}', 'line 2: Map keys must be unique'],
  ];
  test.each(faults)('refuses %s and names the setting in the error', (_, text, message) => {
    expect(() => parseConfig(text)).toThrow(ConfigError);
    expect(() => parseConfig(text)).toThrow(message);
  });

  test('lists the differences between two configurations', () => {
    const next = parseConfig('metrics: { enabled: false }\nremote_terminal: { shell: /bin/sh }');
    expect(configChanges(defaultConfig, next)).toEqual([
      'remote_terminal.shell: "" → "/bin/sh"',
      'metrics.enabled: true → false',
    ]);
    expect(configChanges(next, next)).toEqual([]);
  });
});

describe('a checked configuration file', () => {
  test('reports all errors with their lines', () => {
    expect(
      faultsOfFile('remote_terminal:\n  enabled: maybe\n  shel: x\nmetrics:\n  collection_interval: 0\n', 'a.yml'),
    ).toEqual([
      'a.yml:2: remote_terminal.enabled must be true or false',
      expect.stringMatching(/^a\.yml:3: remote_terminal\.shel is not known.*shell/),
      'a.yml:5: metrics.collection_interval must be at least 1',
    ]);
    expect(faultsOfFile('a: 1\na: 2\n', 'a.yml')).toEqual([expect.stringMatching(/^a\.yml:2: /)]);
    expect(faultsOfFile('', 'a.yml')).toEqual([]);
  });
});
