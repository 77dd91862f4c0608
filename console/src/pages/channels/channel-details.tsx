import type { Channel } from '@muster/protocol/http';
import { Badge } from '../../parts/badge.tsx';
import { countText } from '../../parts/count.ts';
import { Facts } from '../../parts/facts.tsx';
import { Problem } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';

/** The outcome of a test notification: the receiver's HTTP status, or why the delivery failed. */
export type TestOutcome = { readonly status: number } | { readonly error: unknown };

const configLabels: Readonly<Record<string, string>> = {
  url: 'Address',
  webhook_url: 'Address',
  topic: 'Topic',
  secret: 'Signing secret',
  token: 'Access token',
};

/** Shows a channel's configuration, why deliveries fail, and the outcome of a test. */
export function ChannelDetails({ channel, test }: { readonly channel: Channel; readonly test: TestOutcome | null }) {
  const { last_error, failures, next_attempt_at } = channel.delivery;
  return (
    <div className="space-y-3">
      <div className="empty:hidden" role="status">
        {test !== null && 'status' in test && (
          <Badge tone="good">Test delivered: the server responded with {test.status}</Badge>
        )}
      </div>
      {test !== null && 'error' in test && <Problem error={test.error} />}
      <Facts
        facts={[
          ...Object.entries(channel.config).map(
            ([key, value]) =>
              [
                configLabels[key] ?? key,
                <span key={key} className="break-all font-mono text-xs">
                  <Text text={value} />
                </span>,
              ] as const,
          ),
          last_error === null ? null : ['Last error', <Text key="error" text={last_error} maxLength={600} />],
          failures === 0 ? null : ['Failed attempts', countText(failures)],
          next_attempt_at === null ? null : ['Next attempt', <Time key="next" at={next_attempt_at} />],
          ['Added', <Time key="added" at={channel.created_at} />],
          ['Added by', <OperatorName key="by" id={channel.created_by} />],
        ]}
      />
    </div>
  );
}
