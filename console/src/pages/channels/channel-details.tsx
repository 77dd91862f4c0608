import type { Channel } from '@muster/protocol/http';
import type { ReactNode } from 'react';
import { Badge } from '../../parts/badge.tsx';
import { countText } from '../../parts/count.ts';
import { Problem } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';

/** The outcome of a test notification: the receiver's HTTP status, or why the delivery failed. */
export type TestOutcome = { readonly status: number } | { readonly error: unknown };

/** @param status the receiver's HTTP status */
export const deliveredText = (status: number): string => `Test delivered: the server responded with ${status}`;

const configLabels: Readonly<Record<string, string>> = {
  url: 'Address',
  webhook_url: 'Address',
  topic: 'Topic',
  secret: 'Signing secret',
  token: 'Access token',
};

/** Shows a channel's configuration, why deliveries fail, and the outcome of a test. */
export function ChannelDetails({ channel, test }: { readonly channel: Channel; readonly test: TestOutcome | null }) {
  const { last_delivered_at, last_error, failures, next_attempt_at } = channel.delivery;
  return (
    <div className="space-y-3">
      {test !== null && 'status' in test && <Badge tone="good">{deliveredText(test.status)}</Badge>}
      {test !== null && 'error' in test && <Problem error={test.error} />}
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-x-2 gap-y-1 text-sm">
        {Object.entries(channel.config).map(([key, value]) => (
          <Fact key={key} name={configLabels[key] ?? key}>
            <span className="break-all font-mono text-xs">
              <Text text={value} />
            </span>
          </Fact>
        ))}
        <Fact name="Last delivery">{last_delivered_at === null ? 'never' : <Time at={last_delivered_at} />}</Fact>
        {last_error !== null && (
          <Fact name="Last error">
            <Text text={last_error} maxLength={600} />
          </Fact>
        )}
        {failures > 0 && <Fact name="Failed attempts">{countText(failures)}</Fact>}
        {next_attempt_at !== null && (
          <Fact name="Next attempt">
            <Time at={next_attempt_at} />
          </Fact>
        )}
        <Fact name="Added">
          <Time at={channel.created_at} /> by <OperatorName id={channel.created_by} />
        </Fact>
      </dl>
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className="contents">
      <dt className="text-muted">{name}</dt>
      <dd className="flex min-w-0 flex-wrap items-baseline gap-x-1">{children}</dd>
    </div>
  );
}
