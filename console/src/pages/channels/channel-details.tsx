import type { Channel } from '@muster/protocol/http';
import { Badge } from '../../parts/badge.tsx';
import { countText } from '../../parts/count.ts';
import { DetailFact, DetailFacts } from '../../parts/facts.tsx';
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
      <DetailFacts>
        {Object.entries(channel.config).map(([key, value]) => (
          <DetailFact key={key} name={configLabels[key] ?? key}>
            <span className="break-all font-mono text-xs">
              <Text text={value} />
            </span>
          </DetailFact>
        ))}
        <DetailFact name="Last delivery">
          {last_delivered_at === null ? 'never' : <Time at={last_delivered_at} />}
        </DetailFact>
        {last_error !== null && (
          <DetailFact name="Last error">
            <Text text={last_error} maxLength={600} />
          </DetailFact>
        )}
        {failures > 0 && <DetailFact name="Failed attempts">{countText(failures)}</DetailFact>}
        {next_attempt_at !== null && (
          <DetailFact name="Next attempt">
            <Time at={next_attempt_at} />
          </DetailFact>
        )}
        <DetailFact name="Added">
          <Time at={channel.created_at} /> by <OperatorName id={channel.created_by} />
        </DetailFact>
      </DetailFacts>
    </div>
  );
}
