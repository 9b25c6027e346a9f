"""Kafka for the gateway. Apart from the SDK, only the modules of this folder import the Kafka driver."""

from gateway.kafka.command_consumer import CommandConsumer
from gateway.kafka.driver import FITTING_BYTES, LARGEST_RECORD, KafkaUnavailable, ProducerFenced, RecordTooLarge
from gateway.kafka.log_readers import LogReader, TailReader
from gateway.kafka.offsets import Offsets, Partition
from gateway.kafka.place_reader import Place, PlaceReader
from gateway.kafka.record import Record
from gateway.kafka.sign_board import SignBoard
from gateway.kafka.topic_refusals import TopicRefusal
from gateway.kafka.topics import ExistingTopic, Topics, durability
from gateway.kafka.writer import OutgoingRecord, TransactionalWriter

__all__ = [
    "FITTING_BYTES",
    "LARGEST_RECORD",
    "CommandConsumer",
    "ProducerFenced",
    "KafkaUnavailable",
    "LogReader",
    "Offsets",
    "OutgoingRecord",
    "Partition",
    "Place",
    "PlaceReader",
    "Record",
    "RecordTooLarge",
    "SignBoard",
    "TailReader",
    "ExistingTopic",
    "TopicRefusal",
    "Topics",
    "TransactionalWriter",
    "durability",
]
