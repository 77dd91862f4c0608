import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { bytesText } from '../../../../client/src/byte-text.ts';
import { settingsQuery } from '../../api/settings.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { healthQuery, statusQuery } from '../../api/status.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { Id } from '../../parts/copy.tsx';
import { FactsSkeleton } from '../../parts/facts.tsx';
import { SearchInput } from '../../parts/form/search-input.tsx';
import { Meter } from '../../parts/meter.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Loading } from '../../parts/skeletons.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { TableSkeleton } from '../../parts/table/table-skeleton.tsx';
import { Line } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { Replicas } from './replicas-panel.tsx';
import { type Setting, settingsOf } from './settings-rows.ts';

const columns: Column<Setting>[] = [
  {
    id: 'key',
    header: 'Key',
    width: '1fr',
    // A phone is too narrow for long keys. They break after a dot or an underscore; a row has room for two lines.
    cell: ({ key }) => (
      <code className="font-mono text-xs leading-4 [overflow-wrap:anywhere]">
        {key.split(/(?<=[._])/).map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts may repeat, and their order is fixed
          <Fragment key={at}>
            {part}
            <wbr />
          </Fragment>
        ))}
      </code>
    ),
  },
  {
    id: 'value',
    header: 'Value',
    width: '1.5fr',
    cell: ({ value, amount }) =>
      value === null ? (
        <span className="text-muted">not set</span>
      ) : (
        <span className="flex min-w-0 flex-wrap gap-x-2 font-mono text-xs">
          <Line text={value} />
          {amount !== null && <span className="text-muted">{amount}</span>}
        </span>
      ),
  },
  {
    id: 'source',
    header: 'Source',
    width: '7rem',
    from: 'sm',
    phone: 'line',
    cell: ({ source }) =>
      source === 'default' ? <span className="text-muted">{source}</span> : <Badge>{source}</Badge>,
  },
];

export function SettingsPage() {
  const isAdmin = useIsAdmin();
  return (
    <Page
      title="Settings"
      description="The health of the orchestrator, and its active configuration. To change it, edit the configuration file."
    >
      <div className="space-y-4">
        <Health />
        <Replicas />
        {isAdmin ? (
          <Configuration />
        ) : (
          <Panel>
            <Empty title="Only admins can see the configuration" />
          </Panel>
        )}
      </div>
    </Page>
  );
}

const remedies: Readonly<Record<string, string>> = {
  database: 'The database refuses writes, so nothing can be changed. Check its disk and its log.',
  secrets_key: 'An encryption key is missing, so its secrets cannot be read. Restore the key at the configured path.',
  metrics:
    'Metric samples cannot be stored. Agents keep up to one day of samples and send them later. See the log for the reason.',
  disk: 'The disk is nearly full, so writes that grow the database are refused. Free space, or use a larger disk for the data directory.',
  bus: 'Messages from other replicas do not arrive through NATS, so changes appear a few seconds late. See the log for the reason.',
  replica:
    'A replica is missing, or has a different release or configuration. Start it, or make the releases and configurations match.',
};

function Health() {
  const status = useQuery(statusQuery);
  const health = useQuery(healthQuery);
  const error = status.error ?? health.error;
  if (error)
    return (
      <Panel title="Health">
        <Failure error={error} retry={() => void Promise.all([status.refetch(), health.refetch()])} />
      </Panel>
    );
  if (!status.data || !health.data)
    return (
      <Loading label="Loading the health">
        <FactsSkeleton title="Health" count={6} />
      </Loading>
    );
  const { database, secrets_readable, metrics, disk, bus } = health.data;
  const isHealthy = status.data.status === 'ok';
  return (
    <Panel
      title="Health"
      actions={
        <span className="text-sm">
          <Dot tone={isHealthy ? 'good' : 'bad'}>{isHealthy ? 'Healthy' : 'Degraded'}</Dot>
        </span>
      }
    >
      {status.data.reasons.map((reason) => (
        <p key={reason} role="alert" className="mb-3 rounded-md bg-bad-soft px-3 py-2 text-bad text-sm">
          {remedies[reason] ?? reason}
        </p>
      ))}
      <dl className="grid gap-x-8 gap-y-4 text-sm sm:grid-cols-2 lg:grid-cols-4">
        <Fact name="Version">
          {status.data.version} <span className="text-muted">· protocol {status.data.protocol_version}</span>
        </Fact>
        <Fact name="Database">
          <Dot tone={database.writable ? 'good' : 'bad'}>
            {database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, {database.writable ? 'writable' : 'refuses writes'}
          </Dot>
        </Fact>
        <Fact name="Secrets">
          <Dot tone={secrets_readable ? 'good' : 'bad'}>
            {secrets_readable ? 'all keys available' : 'an encryption key is missing'}
          </Dot>
        </Fact>
        <Fact name="Samples">
          <Dot tone={metrics.writable ? 'good' : 'bad'}>{metrics.writable ? 'writable' : 'cannot be stored'}</Dot>
        </Fact>
        {bus && (
          <Fact name="Other replicas">
            <Dot tone={bus.connected && bus.unheard.length === 0 ? 'good' : 'bad'}>
              {!bus.connected
                ? 'no connection to NATS'
                : bus.unheard.length === 0
                  ? 'connected through NATS'
                  : `no messages from ${bus.unheard.join(', ')}`}
            </Dot>
          </Fact>
        )}
        <Fact name="Public key">
          <Id id={status.data.public_key} length={12} />
        </Fact>
        {disk !== null && (
          <div className="sm:col-span-2">
            <dt className="text-muted text-xs">Disk of the data directory</dt>
            <dd>
              <Meter share={(disk.size_bytes - disk.free_bytes) / Math.max(1, disk.size_bytes)} />
              <p className="mt-1 text-muted text-xs">
                {bytesText(disk.free_bytes)} free of {bytesText(disk.size_bytes)}
                {disk.reserve_bytes > 0 &&
                  `; writes that grow the database are refused below ${bytesText(disk.reserve_bytes)}`}
              </p>
            </dd>
          </div>
        )}
      </dl>
    </Panel>
  );
}

const Fact = ({ name, children }: { readonly name: string; readonly children: React.ReactNode }) => (
  <div className="min-w-0">
    <dt className="text-muted text-xs">{name}</dt>
    <dd>{children}</dd>
  </div>
);

function Configuration() {
  const { data, error, refetch } = useQuery(settingsQuery);
  const [text, setText] = useUrlState('q', '');
  const rows = data === undefined ? [] : settingsOf(data).filter(({ key }) => key.includes(text.trim().toLowerCase()));
  return (
    <Panel
      title="Active configuration"
      flush
      actions={
        <div className="w-56 max-sm:w-full">
          <SearchInput
            label="Search keys"
            data-search=""
            placeholder="Search keys"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
      }
    >
      {error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data === undefined ? (
        <TableSkeleton columns={columns} rows={10} />
      ) : (
        <DataTable
          label="Configuration"
          rows={rows}
          columns={columns}
          rowKey={({ key }) => key}
          rowHeight={34}
          empty={<Empty title="No matching keys" />}
        />
      )}
    </Panel>
  );
}
