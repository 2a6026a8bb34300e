// Compiles SPIR-V compute shaders on the first Vulkan device and prints what its compiler says of each:
//
//   compilers [--assembly DIR] FILE.spv ...
//
// A line per file, fields with tabs between: file, threads of a workgroup, threads of a subgroup, then `name=value` for
// every number of VK_KHR_pipeline_executable_properties; and FILE.s in DIR, the assembly. The first line is the device and
// its driver, after `#`. It makes pipelines and runs nothing, so a driver without any hardware will do (RADV's null
// device). Shaders are those of hintflow: entry point `main`, storage buffers in descriptor set 0, up to 128 bytes of
// push constants.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { MOST_BINDINGS = 32, PUSH_BYTES = 128 };
// Of SPIR-V: operations, and the decorations and execution mode that are looked at.
enum { OP_EXECUTION_MODE = 16, OP_DECORATE = 71, LOCAL_SIZE = 17, BINDING = 33 };

static void check(VkResult result, const char *what) {
    if (result != VK_SUCCESS) {
        fprintf(stderr, "%s: Vulkan says %d\n", what, result);
        exit(1);
    }
}

static void *some(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) exit(1);
    return memory;
}

typedef struct {
    uint32_t *words;
    size_t bytes;
    uint32_t threads;
    uint32_t bindings[MOST_BINDINGS];
    uint32_t binding_count;
} Shader;

static Shader read_shader(const char *path) {
    Shader shader = {0};
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) || (long)(shader.bytes = (size_t)ftell(file)) < 20) {
        fprintf(stderr, "%s: cannot be read, or is no SPIR-V\n", path);
        exit(1);
    }
    rewind(file);
    shader.words = some(shader.bytes, 1);
    if (fread(shader.words, 1, shader.bytes, file) != shader.bytes) exit(1);
    fclose(file);
    // After a head of five words come the operations; the first word of each is its length and its number.
    for (size_t at = 5, length; at < shader.bytes / 4; at += length) {
        const uint32_t *op = shader.words + at;
        length = op[0] >> 16;
        if (length == 0 || at + length > shader.bytes / 4) {
            fprintf(stderr, "%s: is no SPIR-V\n", path);
            exit(1);
        }
        uint32_t number = op[0] & 0xffff;
        if (number == OP_EXECUTION_MODE && length == 6 && op[2] == LOCAL_SIZE) shader.threads = op[3] * op[4] * op[5];
        if (number == OP_DECORATE && length == 4 && op[2] == BINDING && shader.binding_count < MOST_BINDINGS) {
            shader.bindings[shader.binding_count++] = op[3];
        }
    }
    return shader;
}

// A device with what wgpu asks for: accesses of buffers are checked by the hardware.
static VkDevice open_device(VkPhysicalDevice physical) {
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkPhysicalDeviceRobustness2FeaturesEXT robust = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT, .robustBufferAccess2 = VK_TRUE};
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pNext = &robust,
        .pipelineExecutableInfo = VK_TRUE};
    VkPhysicalDeviceFeatures features = {.robustBufferAccess = VK_TRUE};
    const char *extensions[] = {"VK_KHR_pipeline_executable_properties", "VK_EXT_robustness2"};
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &executables,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = 2,
        .ppEnabledExtensionNames = extensions,
        .pEnabledFeatures = &features};
    VkDevice device;
    check(vkCreateDevice(physical, &info, NULL, &device), "a device with statistics of pipelines");
    return device;
}

static VkPipeline compile(VkDevice device, const Shader *shader, const char *path) {
    VkDescriptorSetLayoutBinding bindings[MOST_BINDINGS] = {0};
    for (uint32_t i = 0; i < shader->binding_count; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = shader->bindings[i],
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = shader->binding_count,
        .pBindings = bindings};
    VkDescriptorSetLayout set;
    check(vkCreateDescriptorSetLayout(device, &set_info, NULL, &set), path);
    VkPushConstantRange launch = {VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSH_BYTES};
    VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &set,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &launch};
    VkPipelineLayout layout;
    check(vkCreatePipelineLayout(device, &layout_info, NULL, &layout), path);
    VkShaderModuleCreateInfo module_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = shader->bytes, .pCode = shader->words};
    VkShaderModule module;
    check(vkCreateShaderModule(device, &module_info, NULL, &module), path);
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
            VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = module,
            .pName = "main"},
        .layout = layout};
    VkPipeline pipeline;
    check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline), path);
    return pipeline;
}

static void print_statistics(VkDevice device, VkPipeline pipeline) {
    PFN_vkGetPipelineExecutablePropertiesKHR properties_of =
        (PFN_vkGetPipelineExecutablePropertiesKHR)vkGetDeviceProcAddr(device, "vkGetPipelineExecutablePropertiesKHR");
    PFN_vkGetPipelineExecutableStatisticsKHR statistics_of =
        (PFN_vkGetPipelineExecutableStatisticsKHR)vkGetDeviceProcAddr(device, "vkGetPipelineExecutableStatisticsKHR");
    // A compute pipeline is one executable.
    VkPipelineInfoKHR of_pipeline = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
    VkPipelineExecutablePropertiesKHR properties = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
    uint32_t count = 1;
    properties_of(device, &of_pipeline, &count, &properties);
    printf("\t%u", properties.subgroupSize);
    VkPipelineExecutableInfoKHR executable = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
    count = 0;
    check(statistics_of(device, &executable, &count, NULL), "statistics");
    VkPipelineExecutableStatisticKHR *statistics = some(count, sizeof *statistics);
    for (uint32_t i = 0; i < count; i++) statistics[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    check(statistics_of(device, &executable, &count, statistics), "statistics");
    for (uint32_t i = 0; i < count; i++) {
        if (statistics[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR) {
            printf("\t%s=%g", statistics[i].name, statistics[i].value.f64);
        } else {
            printf("\t%s=%llu", statistics[i].name, (unsigned long long)statistics[i].value.u64);
        }
    }
    free(statistics);
}

// The last of a compiler's representations that is text: assembly.
static void write_assembly(VkDevice device, VkPipeline pipeline, const char *folder, const char *name) {
    PFN_vkGetPipelineExecutableInternalRepresentationsKHR texts_of =
        (PFN_vkGetPipelineExecutableInternalRepresentationsKHR)vkGetDeviceProcAddr(
            device, "vkGetPipelineExecutableInternalRepresentationsKHR");
    VkPipelineExecutableInfoKHR executable = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
    uint32_t count = 0;
    check(texts_of(device, &executable, &count, NULL), "representations");
    VkPipelineExecutableInternalRepresentationKHR *texts = some(count, sizeof *texts);
    for (uint32_t i = 0; i < count; i++) {
        texts[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
    }
    // Once for the lengths, once for the texts.
    check(texts_of(device, &executable, &count, texts), "representations");
    for (uint32_t i = 0; i < count; i++) texts[i].pData = some(texts[i].dataSize, 1);
    check(texts_of(device, &executable, &count, texts), "representations");
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.s", folder, name) >= (int)sizeof path) exit(1);
    FILE *file = fopen(path, "w");
    if (!file || count == 0 || !texts[count - 1].isText || fputs(texts[count - 1].pData, file) < 0 || fclose(file)) {
        fprintf(stderr, "%s: there is no assembly, or it cannot be written\n", path);
        exit(1);
    }
    for (uint32_t i = 0; i < count; i++) free(texts[i].pData);
    free(texts);
}

int main(int count, char **paths) {
    const char *folder = NULL;
    if (count > 2 && !strcmp(paths[1], "--assembly")) {
        folder = paths[2];
        paths += 2;
        count -= 2;
    }
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo instance_info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    VkInstance instance;
    check(vkCreateInstance(&instance_info, NULL, &instance), "Vulkan");
    uint32_t devices = 1;
    VkPhysicalDevice physical;
    VkResult found = vkEnumeratePhysicalDevices(instance, &devices, &physical);
    if (devices == 0 || (found != VK_SUCCESS && found != VK_INCOMPLETE)) {
        fprintf(stderr, "no Vulkan device\n");
        return 1;
    }
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    vkGetPhysicalDeviceProperties2(physical, &properties);
    printf("# %s, %s %s\n", properties.properties.deviceName, driver.driverName, driver.driverInfo);
    VkDevice device = open_device(physical);
    for (int i = 1; i < count; i++) {
        Shader shader = read_shader(paths[i]);
        VkPipeline pipeline = compile(device, &shader, paths[i]);
        const char *slash = strrchr(paths[i], '/'), *name = slash ? slash + 1 : paths[i];
        printf("%s\t%u", name, shader.threads);
        print_statistics(device, pipeline);
        if (folder) write_assembly(device, pipeline, folder, name);
        printf("\n");
        fflush(stdout);
        vkDestroyPipeline(device, pipeline, NULL);
        free(shader.words);
    }
    // What is left goes with the process; drivers without hardware need not know how to take a device down.
    return 0;
}
