import protobuf from 'protobufjs';
import snappy from 'snappyjs';

/** Decodes Prometheus remote write messages using the protobuf definition, independently of the tested code. */
const definition = `
  syntax = "proto3";
  package prometheus;
  message WriteRequest {
    repeated TimeSeries timeseries = 1;
    reserved 2;
    repeated MetricMetadata metadata = 3;
  }
  message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }
  message Label { string name = 1; string value = 2; }
  message Sample { double value = 1; int64 timestamp = 2; }
  message MetricMetadata { int32 type = 1; string metric_family_name = 2; string help = 4; string unit = 5; }
`;
const type = protobuf.parse(definition).root.lookupType('prometheus.WriteRequest');

export interface WrittenSeries {
  labels: { name: string; value: string }[];
  samples: { value: number; timestamp: number }[];
}

export function readWriteRequest(body: Uint8Array): WrittenSeries[] {
  const message = type.decode(snappy.uncompress(body));
  return type.toObject(message, { longs: Number, defaults: true, arrays: true }).timeseries as WrittenSeries[];
}

/** Returns the series by name and labels in Prometheus notation, each with its data points. */
export const pointsOf = (body: Uint8Array): Record<string, [at: number, value: number][]> =>
  Object.fromEntries(
    readWriteRequest(body).map(({ labels, samples }) => {
      const name = labels.find((label) => label.name === '__name__')?.value;
      const others = labels.filter((label) => label.name !== '__name__');
      const shown = others.map((label) => `${label.name}="${label.value}"`).join(',');
      return [`${name}{${shown}}`, samples.map(({ value, timestamp }) => [timestamp, value])];
    }),
  );
