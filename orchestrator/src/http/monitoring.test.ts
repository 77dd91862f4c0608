import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createTelemetry } from './metrics/telemetry.ts';

/**
 * Verifies that the queries in docs/monitoring use only names, labels, and label values that the orchestrator exports.
 */

const folder = join(import.meta.dirname, '../../../docs/monitoring');
const rules = parse(readFileSync(join(folder, 'muster.rules.yml'), 'utf8')) as {
  groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[];
};
const dashboard = JSON.parse(readFileSync(join(folder, 'grafana-dashboard.json'), 'utf8')) as {
  panels: { title: string; targets?: { expr: string; legendFormat: string }[] }[];
};
const alerts = rules.groups.flatMap((group) => group.rules);
const panels = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const));

const telemetry = createTelemetry({ processMetrics: true });
telemetry.answered('getAgent', 500, 0.1);
telemetry.committed(3, 0.01);
telemetry.operationEnded('failed');
const { body } = await telemetry.scrape({
  census: async () => ({
    agents: { pending: 1, approved: 7, rejected: 0 },
    operations: { queued: 11, running: 2 },
    terminals: 0,
    deliveries: 8,
    unplacedEvents: 12,
  }),
  ready: () => true,
  levels: () => ({
    connectedAgents: 3,
    dispatchQueue: 2,
    dispatchBytes: 1024,
    database: { queued: 5, queuedBytes: 500, unitsCommitted: 70, unitsFailed: 1, retries: 0 },
    disk: { size: 1000, free: 31, reserve: 32, low: true },
    recordedBytes: 123,
    connections: { api: { open: 31, dropped: { share: 32, full: 33 } }, agentsDropped: 34 },
    samples: { queued: 4, stored: 900, failed: 6, passedOver: 9 },
    remoteWrite: { queued: 21, sent: 22, overflowed: 23, refused: 24, passedOver: 25, retries: 26 },
    bus: { isConnected: true, sent: 41, received: 42, dropped: 43, gaps: 44, ignored: { forged: 45 } },
    replica: {
      states: ['ready', 'draining', 'ready'],
      troubles: ['missing', 'version'],
      isDraining: true,
      heartbeatAgeSecs: 1.5,
      closed: 51,
      leases: { held: 52, lost: 53 },
    },
  }),
});

/** Label values by metric and label, including labels that Prometheus adds. */
const shown = new Map<string, Map<string, Set<string>>>([['up', new Map()]]);
for (const line of body.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
  const [, name = '', labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
  const of = shown.get(name) ?? new Map<string, Set<string>>();
  shown.set(name, of);
  for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g))
    of.set(label, (of.get(label) ?? new Set()).add(value));
}
const added = ['instance', 'job'];

function expectShown(expr: string): void {
  const names = [...expr.matchAll(/\b(up|(?:muster|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
  expect(names.length, expr).toBeGreaterThan(0);
  for (const [, name = '', matchers = ''] of names) {
    expect([...shown.keys()], expr).toContain(name);
    for (const [, label = '', sign = '', value = ''] of matchers.matchAll(/(\w+)(=~|=)"([^"]*)"/g)) {
      if (added.includes(label)) continue;
      expect([...(shown.get(name)?.keys() ?? [])], `${name} in ${expr}`).toContain(label);
      if (sign === '=') expect([...(shown.get(name)?.get(label) ?? [])], `${name} in ${expr}`).toContain(value);
    }
  }
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(',').map((one) => one.trim()),
  );
  const known = new Set([...added, ...names.flatMap(([, name = '']) => [...(shown.get(name)?.keys() ?? [])])]);
  for (const label of grouped) expect([...known], expr).toContain(label);
}

test('exports metrics that follow Prometheus naming conventions', () => {
  const families = [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({ name, type }));
  expect(families.length).toBeGreaterThan(40);
  expect(families.filter(({ name, type }) => name.endsWith('_total') !== (type === 'counter'))).toEqual([]);
  expect(families.filter(({ name }) => /_(milliseconds|ms|minutes|kilobytes|kb|mb|percent)\b/.test(name))).toEqual([]);
  expect([...body.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name)).toEqual(families.map(({ name }) => name));
});

describe('docs/monitoring', () => {
  test.each(alerts.map(({ alert, expr, annotations }) => [alert, expr, annotations] as const))(
    'uses only exported metrics in the alert %s',
    (_, expr, annotations) => {
      expectShown(expr);
      expect(Object.keys(annotations)).toEqual(['summary', 'action']);
    },
  );
  test.each(panels)('uses only exported metrics in the panel %s: %s', (_, expr) => expectShown(expr));
});
