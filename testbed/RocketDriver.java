import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A RocketMQ client on a leash: one JSON command per line of standard input, one JSON event per line of standard output.
 *
 * Every command has an id and is answered by an event with that id. A delivery is an event of its own, and its listener
 * waits for the command "outcome" with the delivery's number. The end of standard input ends the program.
 */
public class RocketDriver {
    private static final String TAG_ALL = "*";
    private static final int MANY = 32;
    private static final int TOPIC_NOT_EXIST = 17;
    /** Retry and dead-letter topics. */
    private static final String MADE_WHEN_NEEDED = "%";
    private static final int PATIENCE = 50;
    private static final long PAUSE_MS = 200;

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final String nameServer;
    private final String brokerName;
    private final DefaultMQProducer producer;
    private final DefaultMQPullConsumer reader;
    private final Map<String, DefaultMQPushConsumer> consumers = new HashMap<>();
    private final Map<Long, CompletableFuture<JSONObject>> open = new ConcurrentHashMap<>();
    private final AtomicLong deliveries = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        new RocketDriver(arguments[0], arguments[1]).serve();
        System.exit(0);
    }

    private RocketDriver(String nameServer, String brokerName) throws Exception {
        this.nameServer = nameServer;
        this.brokerName = brokerName;
        producer = configured(new DefaultMQProducer("driver-producer"), "producer");
        producer.setSendMsgTimeout(5_000);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        reader = configured(new DefaultMQPullConsumer("driver-reader"), "reader");
        reader.start();
    }

    /** An instance name of its own keeps the clients of one program apart. */
    private <T extends ClientConfig> T configured(T client, String instance) {
        client.setNamesrvAddr(nameServer);
        client.setInstanceName(instance);
        client.setPollNameServerInterval(200);
        client.setHeartbeatBrokerInterval(1_000);
        client.setPersistConsumerOffsetInterval(500);
        client.setVipChannelEnabled(false);
        return client;
    }

    private void serve() throws Exception {
        ExecutorService worker = Executors.newSingleThreadExecutor();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JSONObject command = JSON.parseObject(line);
            if (command.getString("do").equals("outcome")) {
                // Never behind another command: that one may be waiting for the listener that waits for this.
                open.remove(command.getLong("delivery")).complete(command);
            } else {
                worker.submit(() -> answer(command));
            }
        }
    }

    private void answer(JSONObject command) {
        JSONObject event = new JSONObject(true);
        event.put("id", command.get("id"));
        try {
            event.put("result", carryOut(command));
        } catch (InvocationTargetException error) {
            event.put("error", named(error.getCause()));
        } catch (Throwable error) {
            event.put("error", named(error));
        }
        say(event);
    }

    private static String named(Throwable error) {
        String text = error.getClass().getSimpleName() + ": " + error.getMessage();
        return error.getCause() == null ? text : text + " (" + named(error.getCause()) + ")";
    }

    private Object carryOut(JSONObject command) throws Exception {
        switch (command.getString("do")) {
            case "create":
                return create(command.getString("topic"), command.getIntValue("queues"));
            case "send":
                return send(command);
            case "subscribe":
                return subscribe(command);
            case "unsubscribe":
                consumers.remove(command.getString("group")).shutdown();
                return null;
            case "read":
                return read(command.getString("topic"), command.getIntValue("queues"));
            default:
                throw new IllegalArgumentException(command.getString("do"));
        }
    }

    /** The number of arguments differs between 4.9 and 5.x. */
    private Object create(String topic, int queues) throws Exception {
        for (Method method : producer.getClass().getMethods()) {
            if (method.getName().equals("createTopic") && method.getParameterCount() == 3) {
                return method.invoke(producer, "TBW102", topic, queues);
            }
        }
        Method method = producer.getClass().getMethod("createTopic", String.class, String.class, int.class, Map.class);
        return method.invoke(producer, "TBW102", topic, queues, new HashMap<String, String>());
    }

    private JSONObject send(JSONObject command) throws Exception {
        String topic = command.getString("topic");
        Message message = new Message(topic, command.getString("body").getBytes(StandardCharsets.UTF_8));
        command.getJSONObject("properties").forEach(
            (name, value) -> MessageAccessor.putProperty(message, name, value.toString()));
        SendResult result = producer.send(message, new MessageQueue(topic, brokerName, command.getIntValue("queue")));
        JSONObject sent = new JSONObject(true);
        sent.put("status", result.getSendStatus().name());
        sent.put("message_id", result.getMsgId());
        sent.put("offset_message_id", result.getOffsetMsgId());
        return sent;
    }

    private Object subscribe(JSONObject command) throws Exception {
        String group = command.getString("group");
        DefaultMQPushConsumer consumer = configured(newConsumer(group), command.getString("instance"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMaxReconsumeTimes(command.getIntValue("max"));
        consumer.setConsumeMessageBatchMaxSize(command.getIntValue("batch"));
        consumer.setConsumeThreadMin(command.getIntValue("threads"));
        consumer.setConsumeThreadMax(command.getIntValue("threads"));
        model(consumer, command.getString("model"));
        consumer.subscribe(command.getString("topic"), TAG_ALL);
        if (command.getBooleanValue("orderly")) {
            consumer.setSuspendCurrentQueueTimeMillis(command.getIntValue("suspend"));
            consumer.registerMessageListener(
                (MessageListenerOrderly) (batch, context) -> consumeInOrder(group, batch, context));
        } else {
            consumer.registerMessageListener(
                (MessageListenerConcurrently) (batch, context) -> consume(group, batch, context));
        }
        consumer.start();
        consumers.put(group, consumer);
        return null;
    }

    /** A client looks for an address of this machine, and fails while one of its network interfaces goes. */
    private static DefaultMQPushConsumer newConsumer(String group) throws InterruptedException {
        for (int left = PATIENCE; ; left--) {
            try {
                return new DefaultMQPushConsumer(group);
            } catch (NullPointerException error) {
                if (left == 0) {
                    throw error;
                }
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    /** The enumeration moved to another package in 5.x. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void model(DefaultMQPushConsumer consumer, String name) throws Exception {
        for (Method method : consumer.getClass().getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                method.invoke(consumer, Enum.valueOf((Class<Enum>) method.getParameterTypes()[0], name));
            }
        }
    }

    private ConsumeConcurrentlyStatus consume(String group, List<MessageExt> batch, ConsumeConcurrentlyContext context) {
        JSONObject outcome = ask(group, batch, context.getMessageQueue());
        if (outcome.containsKey("level")) {
            context.setDelayLevelWhenNextConsume(outcome.getIntValue("level"));
        }
        if (outcome.containsKey("ack_index")) {
            context.setAckIndex(outcome.getIntValue("ack_index"));
        }
        String status = status(outcome);
        return status == null ? null : ConsumeConcurrentlyStatus.valueOf(status);
    }

    private ConsumeOrderlyStatus consumeInOrder(String group, List<MessageExt> batch, ConsumeOrderlyContext context) {
        String status = status(ask(group, batch, context.getMessageQueue()));
        return status == null ? null : ConsumeOrderlyStatus.valueOf(status);
    }

    private static String status(JSONObject outcome) {
        String status = outcome.getString("status");
        if ("throw".equals(status)) {
            throw new IllegalStateException("as told");
        }
        return status;
    }

    private JSONObject ask(String group, List<MessageExt> batch, MessageQueue queue) {
        long number = deliveries.incrementAndGet();
        CompletableFuture<JSONObject> outcome = new CompletableFuture<>();
        open.put(number, outcome);
        JSONObject event = new JSONObject(true);
        event.put("delivery", number);
        event.put("time", System.currentTimeMillis());
        event.put("group", group);
        event.put("from", queue.getTopic());
        event.put("messages", described(batch));
        say(event);
        return outcome.join();
    }

    /** A broker that has just started is not known to the name server at once; after some patience that is an error. */
    private JSONArray read(String topic, int queues) throws Exception {
        for (int left = PATIENCE; ; left--) {
            try {
                return described(stored(topic, queues));
            } catch (MQClientException error) {
                if (topic.startsWith(MADE_WHEN_NEEDED) && isMissing(error)) {
                    return new JSONArray();
                }
                if (left == 0) {
                    throw error;
                }
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    private List<MessageExt> stored(String topic, int queues) throws Exception {
        if (topic.startsWith(MADE_WHEN_NEEDED)) {
            reader.fetchSubscribeMessageQueues(topic);
        }
        List<MessageExt> found = new ArrayList<>();
        for (int queue = 0; queue < queues; queue++) {
            MessageQueue from = new MessageQueue(topic, brokerName, queue);
            long end = reader.maxOffset(from);
            for (long next = reader.minOffset(from); next < end; ) {
                PullResult pulled = reader.pull(from, TAG_ALL, next, MANY);
                if (pulled.getPullStatus() == PullStatus.FOUND) {
                    found.addAll(pulled.getMsgFoundList());
                }
                next = pulled.getNextBeginOffset();
            }
        }
        return found;
    }

    /** The client words a timeout like a topic that is not there: only the name server's code tells. */
    private static boolean isMissing(Throwable error) {
        if (error instanceof MQClientException && ((MQClientException) error).getResponseCode() == TOPIC_NOT_EXIST) {
            return true;
        }
        return error.getCause() != null && isMissing(error.getCause());
    }

    private static JSONArray described(List<MessageExt> messages) {
        JSONArray all = new JSONArray();
        for (MessageExt message : messages) {
            JSONObject one = new JSONObject(true);
            one.put("topic", message.getTopic());
            one.put("queue", message.getQueueId());
            one.put("queue_offset", message.getQueueOffset());
            one.put("born", message.getBornTimestamp());
            one.put("stored", message.getStoreTimestamp());
            one.put("reconsume_times", message.getReconsumeTimes());
            one.put("message_id", message.getMsgId());
            one.put("offset_message_id",
                message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : message.getMsgId());
            one.put("properties", new JSONObject(new TreeMap<String, Object>(message.getProperties())));
            one.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
            all.add(one);
        }
        return all;
    }

    private synchronized void say(JSONObject event) {
        out.println(JSON.toJSONString(event, SerializerFeature.WriteMapNullValue,
            SerializerFeature.DisableCircularReferenceDetect));
    }
}
