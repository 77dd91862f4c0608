import { type Channel, type ChannelType, channelTypes } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { addChannel, changeChannel } from '../../api/channels.ts';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { useDraftFields } from '../use-draft-fields.ts';
import { channelTypeNames } from './channel-types.ts';

interface ConfigField {
  readonly key: string;
  readonly label: string;
  readonly hint?: string;
  readonly optional?: true;
  /** Whether the API masks the value. Sending the mask back keeps the stored value. */
  readonly secret?: true;
}

const configFields: Readonly<Record<ChannelType, readonly ConfigField[]>> = {
  webhook: [
    { key: 'url', label: 'Address', hint: 'Receives each event as a JSON POST request.' },
    {
      key: 'secret',
      label: 'Signing secret',
      optional: true,
      secret: true,
      hint: 'Adds the header X-Signature-256, an HMAC of the body.',
    },
  ],
  discord: [
    {
      key: 'webhook_url',
      label: 'Webhook address',
      secret: true,
      hint: 'From the channel’s settings: Integrations, Webhooks.',
    },
  ],
  slack: [{ key: 'webhook_url', label: 'Webhook address', secret: true, hint: 'The incoming webhook of your app.' }],
  ntfy: [
    { key: 'url', label: 'Server', optional: true, hint: 'Default: https://ntfy.sh' },
    { key: 'topic', label: 'Topic', hint: 'Letters, digits, - and _.' },
    { key: 'token', label: 'Access token', optional: true, secret: true },
  ],
};

interface ChannelFields {
  readonly type: ChannelType;
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
}

/** Returns the input without secrets, which must not be stored in the browser. */
function withoutSecrets({ type, name, config }: ChannelFields): ChannelFields {
  const secrets = new Set(configFields[type].flatMap(({ key, secret }) => (secret ? [key] : [])));
  return { type, name, config: Object.fromEntries(Object.entries(config).filter(([key]) => !secrets.has(key))) };
}

export function ChannelForm({ channel, onClose }: { readonly channel: Channel | null; readonly onClose: () => void }) {
  const [{ type, name, config }, change] = useDraftFields<ChannelFields>({
    name: channel === null ? 'new channel' : `channel ${channel.id}`,
    initial: () => ({
      type: channel?.channel_type ?? 'webhook',
      name: channel?.name ?? '',
      config: channel?.config ?? {},
    }),
    keep: withoutSecrets,
    merge: (fields, stored) => ({ ...fields, ...stored, config: { ...fields.config, ...stored.config } }),
  });
  const save = useMutation({
    mutationFn: () => {
      const given = Object.fromEntries(
        configFields[type].flatMap(({ key }) => (config[key] ? [[key, config[key]] as const] : [])),
      );
      return channel === null ? addChannel(name, type, given) : changeChannel(channel.id, name, given);
    },
    onSuccess: () => {
      notify(channel === null ? `Added the channel ${name}` : `Changed the channel ${name}`);
      onClose();
    },
  });
  return (
    <FormDialog
      title={channel === null ? 'Add channel' : `Edit ${channel.name}`}
      action={channel === null ? 'Add channel' : 'Save'}
      request={save}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {channel === null && (
        <Select label="Type" value={type} onChange={(event) => change({ type: event.target.value as ChannelType })}>
          {channelTypes.map((each) => (
            <option key={each} value={each}>
              {channelTypeNames[each]}
            </option>
          ))}
        </Select>
      )}
      <Input
        label="Name"
        required
        autoFocus
        maxLength={64}
        value={name}
        onChange={(event) => change({ name: event.target.value })}
      />
      {configFields[type].map(({ key, label, hint, optional, secret }) => (
        <Input
          key={key}
          label={optional ? `${label} (optional)` : label}
          required={!optional}
          value={config[key] ?? ''}
          onChange={(event) => change({ config: { ...config, [key]: event.target.value } })}
          onFocus={(event) => secret && event.target.select()}
          hint={
            channel !== null && secret && channel.config[key]
              ? `${hint ?? ''} Leave unchanged to keep its value.`.trim()
              : hint
          }
        />
      ))}
    </FormDialog>
  );
}
