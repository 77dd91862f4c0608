import { z } from 'zod';
import { HostFailure } from '../failure.ts';

/** A container as the engine describes it. */
export interface InspectedContainer {
  id: string;
  name: string;
  /** ID of the image. */
  image: string;
  /** Image reference that the container was created from. */
  imageName: string;
  /** Such as `running`, `exited`, or `paused`. */
  status: string;
  /** When the container was last started. */
  startedAt: string;
  exitCode: number;
  /** Such as `healthy` or `starting`; empty without a health check. */
  health: string;
  /** How often its restart policy has restarted it. */
  restarts: number;
  environment: ReadonlyMap<string, string>;
  labels: Readonly<Record<string, string>>;
  /** In the format of a declaration, such as `on-failure:3`. */
  restart: string;
  /** Bytes; 0 for no limit. */
  memory: number;
  /** Billionths of a CPU; 0 for no limit. */
  nanoCpus: number;
  /** Sorted names. */
  networks: string[];
}

/** Text that is shown in reports. */
const text = z.string().max(600);
const number = z.number().nullish();

const shape = z.object({
  Id: z.string().regex(/^[0-9a-f]{64}$/),
  Name: text.min(1),
  Image: text,
  RestartCount: number,
  State: z.object({
    Status: text,
    StartedAt: text.nullish(),
    ExitCode: number,
    Health: z.object({ Status: text.nullish() }).nullish(),
  }),
  Config: z.object({
    Image: text.nullish(),
    Env: z.array(z.string()).nullish(),
    Labels: z.record(z.string(), z.string()).nullish(),
  }),
  HostConfig: z.object({
    RestartPolicy: z.object({ Name: text.nullish(), MaximumRetryCount: number }).nullish(),
    Memory: number,
    NanoCpus: number,
    CpuQuota: number,
    CpuPeriod: number,
    NetworkMode: text.nullish(),
  }),
  NetworkSettings: z.object({ Networks: z.record(z.string(), z.unknown()).nullish() }).nullish(),
});

/** Returns an ID without the prefix that Docker adds. */
export const bareId = (id: string): string => id.replace(/^sha256:/, '');

/** @throws HostFailure if the value does not describe a container */
export function inspectedContainer(value: unknown): InspectedContainer {
  const read = shape.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new HostFailure(`the description of a container is not understood at ${issue?.path.join('.') ?? ''}`);
  }
  const { Id, Name, Image, RestartCount, State, Config, HostConfig, NetworkSettings } = read.data;
  const { Memory, NanoCpus, CpuQuota, CpuPeriod, NetworkMode, RestartPolicy } = HostConfig;
  const quota = (CpuQuota ?? 0) > 0 && (CpuPeriod ?? 0) > 0 ? ((CpuQuota ?? 0) / (CpuPeriod ?? 1)) * 1e9 : 0;
  const networks = Object.keys(NetworkSettings?.Networks ?? {});
  const isShared = NetworkMode === 'host' || NetworkMode === 'none';
  return {
    id: Id,
    name: Name.replace(/^\//, ''),
    image: bareId(Image),
    imageName: Config.Image ?? '',
    status: State.Status,
    startedAt: State.StartedAt ?? '',
    exitCode: State.ExitCode ?? 0,
    health: State.Health?.Status === 'none' ? '' : (State.Health?.Status ?? ''),
    restarts: RestartCount ?? 0,
    environment: new Map(
      (Config.Env ?? []).map((line): [string, string] => {
        const [name = ''] = line.split('=', 1);
        return [name, line.slice(name.length + 1)];
      }),
    ),
    labels: { ...Config.Labels },
    restart: restartOf(RestartPolicy?.Name ?? '', RestartPolicy?.MaximumRetryCount ?? 0),
    memory: Memory ?? 0,
    nanoCpus: Math.round(NanoCpus || quota),
    networks: isShared ? [NetworkMode] : networks.sort(),
  };
}

/** Returns containers by name. A container with an unknown description fails only the resources that read it. */
export function containersByName(values: readonly unknown[]): ReadonlyMap<string, InspectedContainer | HostFailure> {
  return new Map(
    values.map((value): [string, InspectedContainer | HostFailure] => {
      try {
        const found = inspectedContainer(value);
        return [found.name, found];
      } catch (error) {
        const name = inspectedName(value);
        if (name === null || !(error instanceof HostFailure)) throw error;
        return [name.replace(/^\//, ''), error];
      }
    }),
  );
}

function restartOf(name: string, retries: number): string {
  if (name === '') return 'no';
  return name === 'on-failure' && retries > 0 ? `on-failure:${retries}` : name;
}

const imageShape = z.object({
  Id: z
    .string()
    .transform(bareId)
    .pipe(z.string().regex(/^[0-9a-f]{64}$/)),
  RepoTags: z.array(z.string()).nullish(),
  RepoDigests: z.array(z.string()).nullish(),
  Config: z.object({ Labels: z.record(z.string(), z.string()).nullish() }).nullish(),
});

/** @returns the ID of an image, the references that name it, and the labels that its containers inherit */
export function inspectedImage(value: unknown): {
  id: string;
  names: string[];
  labels: Readonly<Record<string, string>>;
} {
  const read = imageShape.safeParse(value);
  if (!read.success) throw new HostFailure('the description of an image is not understood');
  const { Id, RepoTags, RepoDigests, Config } = read.data;
  return { id: Id, names: [...(RepoTags ?? []), ...(RepoDigests ?? [])], labels: { ...Config?.Labels } };
}

const volumeShape = z.object({ Name: text, Labels: z.record(z.string(), z.string()).nullish() });

/** @throws HostFailure if the value does not describe a volume */
export function inspectedVolume(value: unknown): { name: string; labels: Readonly<Record<string, string>> } {
  const read = volumeShape.safeParse(value);
  if (!read.success) throw new HostFailure('the description of a volume is not understood');
  return { name: read.data.Name, labels: { ...read.data.Labels } };
}

const namedShape = z.object({ Name: z.string().optional(), name: z.string().optional() });

/** Returns the name of a network or volume; null if the value has none. */
export function inspectedName(value: unknown): string | null {
  const read = namedShape.safeParse(value);
  return read.success ? (read.data.Name ?? read.data.name ?? null) : null;
}
